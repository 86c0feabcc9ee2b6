"""The few operations everything is made of, once per kind of device."""
