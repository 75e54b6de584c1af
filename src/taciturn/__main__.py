"""``python -m taciturn``, which is also how torchrun starts it: ``torchrun --nproc-per-node 2 -m taciturn train …``"""

from taciturn.cli.main import main

if __name__ == "__main__":
    main()
