"""Generated cases, one module a kind: other numbers than anybody's examples, same kinds of truth.

Each module has ``CASES = {name: (write, expect)}``. ``write(folder)`` writes the files; ``expect``
says what a verdict must claim (``rule``, ``segment``, ``requests``, ``magnitude``, ``tolerance``)
and what it must not (``must_not``); rules in ``may`` are true or arguable and not judged. Without a
``rule`` only the silence is judged. Numbers come from the parameters, never from what is written.
"""
