"""What both engines share: rules, level loop, array specifications, ledger, threads."""
