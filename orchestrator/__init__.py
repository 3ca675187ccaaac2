"""The tournament farm: what is played next, and what a result means.

This package imports nothing here, so that ``celery -A orchestrator`` and every
entry point stay light; the Celery application lives in ``orchestrator.celery``.
"""
