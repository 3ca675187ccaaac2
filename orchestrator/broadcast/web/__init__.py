"""The web application: pages, read API, streams; it holds nothing that is not derived."""
