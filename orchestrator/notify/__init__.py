"""Notices by mail and webhook: what people must know or decide."""
