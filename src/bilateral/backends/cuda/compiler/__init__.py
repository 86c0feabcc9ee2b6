"""Compile Triton kernels for a device, in parallel and ahead of time, and load them.

Triton would compile each kernel when it is first launched, one after the other, and build a
launcher in C for each list of argument types. Here a `Variant` describes what is compiled, its
binary is cached on disk, helper processes compile those that a call is going to need, and the
driver's API launches them without a C compiler.
"""
