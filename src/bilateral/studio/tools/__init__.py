"""The four tools of the studio, each a thin use of `bilateral.tasks`."""
