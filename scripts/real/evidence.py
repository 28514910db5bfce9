"""How often the rule of evidence (docs/accuracy.md, "The certificate") keeps its word.

A tensor is called safe at a scale of 1 by some windows of a text. Then all other windows are looked
at. The tensors of a model rarely lie at the limit, so each is moved there: its largest value of all
windows is put between four octaves below 448 and one above.
"""
import math
import random

LIMIT = 448
LEAST_ROOM = 1  # octaves
DOUBLINGS = 3
DRAWS = 100
SIZES = (8, 16, 32, 64)  # windows
MOVES = [-4 + i / 4 for i in range(21)]  # octaves from 448 to the largest value of all windows


def needed_room(half, whole):
    """The octaves of room that the rule asks for."""
    growth = whole / half if half > 0 else math.inf
    return max(LEAST_ROOM, DOUBLINGS * math.log2(growth))


def judge(maxima, seed=1):
    """For each size: cases that were called safe, those of them that saturated later, cases with an
    octave of room in all of the text, and those of them that were called safe.

    maxima: [window][layer][K, V].
    """
    random.seed(seed)
    count = len(maxima)
    flat = [[value for layer in window for value in layer] for window in maxima]
    tensors = range(len(flat[0]))
    largest = [max(window[t] for window in flat) for t in tensors]
    found = {size: [0, 0, 0, 0] for size in SIZES if 2 * size <= count}
    for size, tally in found.items():
        for _ in range(DRAWS):
            drawn = random.sample(range(count), size)
            half = [max(flat[i][t] for i in drawn[:size // 2]) for t in tensors]
            whole = [max(half[t], *(flat[i][t] for i in drawn[size // 2:])) for t in tensors]
            for t in tensors:
                if largest[t] == 0:
                    continue
                missed = math.log2(largest[t] / whole[t]) if whole[t] > 0 else math.inf
                needed = needed_room(half[t], whole[t])
                for move in MOVES:
                    safe = -move + missed >= needed
                    tally[0] += safe
                    tally[1] += safe and move > 0
                    tally[2] += -move >= LEAST_ROOM
                    tally[3] += safe and -move >= LEAST_ROOM
    return found
