"""The studio: a local web page to colorize, cut out, correct depth and refocus photographs.

The server adapts the tasks of the library to the page in `static/`; no algorithm lives here.
"""
