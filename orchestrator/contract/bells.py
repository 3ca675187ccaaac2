"""The names of the doorbells: tasks, queues, and what all of Celery's keys begin with.

Who rings (orchestrator, halls) and who listens (halls, GPU boxes) must agree on them. Apart from
the Celery application, which takes Redis' address from the environment when it is imported: who
only starts or watches processes must not make it.
"""

from __future__ import annotations

APP = "farm"  # the name of the Celery application
KEYS = "farm:celery:"  # what the names of all of Celery's keys and channels begin with
DROPPED = KEYS + "dropped"  # a hash: queue or channel -> messages dropped there so far
PLAY = "farm.play"  # the one task: look at your hall, and play what is ready there
PREPARE = "farm.prepare"  # the one task of a GPU box: look at what is wanted of it


def queue(hall: str) -> str:
    """Return the queue of a hall's doorbell; a lane's is ``HALL.LANE``'s."""
    return f"{PLAY}.{hall}"


def is_queue(name: str) -> bool:
    """Say whether a name is the queue of a bell."""
    return name.startswith((f"{PLAY}.", f"{PREPARE}."))


def box_queue(box: str) -> str:
    """Return the queue of a GPU box's doorbell."""
    return f"{PREPARE}.{box}"
