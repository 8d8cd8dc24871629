"""The verbs: what each takes, and the one library function that it calls."""

from diagan.verbs import diagnosing, measuring, showing, training

VERBS = (*training.VERBS, *diagnosing.VERBS, *measuring.VERBS, *showing.VERBS)
