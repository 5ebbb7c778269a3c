"""Groups of commands that answer a misspelt name with the nearest one."""

import click

from planaria.core.errors import unknown


class Group(click.Group):
    """A group that knows what its names look like."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises UsageError, with the nearest name, if there is no such command."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)
