"""`python -m gym_super_mario_bros`."""

from warpzone.compat.gym_super_mario_bros._app.cli import main

if __name__ == "__main__":
    main()
