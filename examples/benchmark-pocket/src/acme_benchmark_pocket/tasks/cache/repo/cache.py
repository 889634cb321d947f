"""A function that remembers."""


def remembered(function, known={}):
    def call(argument):
        if argument not in known:
            known[argument] = function(argument)
        return known[argument]

    return call
