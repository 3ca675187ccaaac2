"""Celery's queues: what may travel over them, and which orders a worker refuses."""
