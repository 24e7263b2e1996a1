"""The sources: each a module with what to ask, how to read it, when, and how often at most.

    site       the web site of rocket flights: tables in HTML
    brokers    a broker's own metrics: the text format of Prometheus
    launches   a launch calendar: a JSON API with pages, a token and a limit of requests

Each has a function that returns its jobs for an address.
"""
