"""Valid input, changed at random, against "a clean error or a valid result".

``python -m tests.fuzz --seconds 120 --seed 0`` tries all targets; ``--help`` says more.
"""
