"""What every pluggable class is, and the catalogue of them.

`component` is the base of tools, terminals, benchmarks, agents and the rest: a name, a help text, typed settings.
`catalogue` holds what is installed, by kind and name; `homes` knows who brings what is not; `entry_points` finds them
and `markers` are the marks on what plugins implement. `default` is where to ask who was handed none. Who loads them is
`debug_gym_core.plugins`, on top of the house.
"""
