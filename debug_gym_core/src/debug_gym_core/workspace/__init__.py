"""The files of one task: the pristine copy, the rules, what changed, the patch."""
