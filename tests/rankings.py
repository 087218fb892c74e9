"""What a ranking has to find, in plaintext."""


def top_names(values, k, order):
    """Positions of the k largest values above 0, ascending; of equal ones the one with the larger number in `order` comes first."""
    best = sorted(range(len(values)), key=lambda i: (values[i], order[i]), reverse=True)
    return tuple(sorted(i for i in best[:k] if values[i] > 0))


def top_merged(values, k, most, groups, order):
    """Of as many of the largest as belong to `k` groups, `most` at the most; not fewer than `k` of them."""
    found = top_names(values, k, order)
    for more in range(k + 1, most + 1):
        larger = top_names(values, more, order)
        if len({groups[i] for i in larger}) <= k:
            found = larger
    return found
