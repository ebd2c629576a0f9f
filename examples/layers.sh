# In examples/project.
toolgate layers set month-end --deny mark_open --reason "books are closed" --why "month end"
toolgate roles set auditor --categories finance --forbid mark_paid
toolgate roles set clerk --allow group:all
toolgate layers list
toolgate explain mark_open --role clerk
toolgate explain mark_paid --role auditor
toolgate explain open_invoices --role intern
toolgate explain mark_paid --role clerk --read-only
toolgate personas restrict trainee mark_paid --reason "sits next to somebody"
toolgate explain mark_paid --role clerk --persona trainee
