"""Learning: targets, losses, normalisation, replay, schedules and the learner."""
