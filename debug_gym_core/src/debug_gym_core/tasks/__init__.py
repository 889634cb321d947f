"""What is to be solved: tasks, where they come from, how their code is started."""
