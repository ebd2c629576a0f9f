# In examples/project: two phases refuse, and each says what would help.
toolgate tools disable mark_paid --tenant demo --why "audit"
toolgate layers set month-end --deny mark_paid --reason "books are closed"
toolgate explain mark_paid
toolgate tools enable mark_paid --tenant demo
toolgate layers permit month-end mark_paid
toolgate explain mark_paid
