"""Compiled kernels that pick the non-zeros out of a table of samples."""

from agewise.compiled import compiled


@compiled()
def count_entries(table, order, starts):
    """Where the entries of each row begin: row i holds the non-zeros of ``table[order[i]]``."""
    starts[0] = 0
    for row in range(order.size):
        count = 0
        for feature in range(table.shape[1]):
            count += table[order[row], feature] != 0
        starts[row + 1] = starts[row] + count


@compiled()
def fill_entries(table, order, starts, features, values):
    """The non-zeros of ``table[order[i]]`` as (feature, value) pairs."""
    for row in range(order.size):
        at = starts[row]
        for feature in range(table.shape[1]):
            value = table[order[row], feature]
            if value != 0:
                features[at] = feature
                values[at] = value
                at += 1
