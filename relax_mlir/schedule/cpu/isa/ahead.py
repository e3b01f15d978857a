"""How far ahead of its use memory that is read in order is asked for, by machine."""

from dataclasses import dataclass

from relax_mlir.target import Target

WORK_OF_KEY = 448
"""Products of a key, of two heads at least, from which on Zen 4 has to be asked for the next."""


@dataclass(frozen=True)
class Ahead:
    """How many bytes ahead, and into which cache (3: the nearest one, 2: the one behind it).

    `always` is for machines that fetch too little by themselves, whatever is done with numbers.
    """

    bytes: int
    locality: int
    always: bool = False

    @staticmethod
    def of_weights(target: Target, bits: int, is_few: bool) -> "Ahead":
        """Of quantised weights, numbers of so many bits, which few rows or many are times.

        Of 0.5 to 8 KiB the best on Zen 4, of 0.5 to 12 on Zen 5 (four blocks of k for many rows),
        of 4 to 32 on a machine with tile registers.
        """
        if target.is_xeon:
            return Ahead(16384 if bits == 8 else 8192, 2, always=True)
        if target.is_zen5:
            if is_few:
                return Ahead(6144, 3, always=True)
            return Ahead(2048 if bits == 8 else 1024, 3)
        return Ahead(4096, 3, always=target.is_early_zen)

    @staticmethod
    def of_cache(target: Target, group: int, width: int) -> "Ahead | None":
        """Of keys, and of values, of `width` numbers, of a few queries with `group` heads for each.

        None where that gains nothing, as on Zen 4, which reads ahead by itself as long as little is
        done with what it reads, and on CPUs without AVX-512 that were not measured.
        """
        if target.is_xeon:
            return Ahead(8192, 2, always=True)
        if target.is_early_zen:
            return Ahead(8192, 3)
        if target.is_zen5:
            # It reads ahead by itself as far as a page goes, and begins anew on the next one.
            return Ahead(4096, 3)
        is_much = max(group, 2) * width >= WORK_OF_KEY
        return Ahead(8192, 2) if target.vector_bytes == 64 and is_much else None
