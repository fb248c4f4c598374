"""The subcommands of `inferwatch`, one file each, imported only when used."""
