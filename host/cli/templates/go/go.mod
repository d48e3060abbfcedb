module {{crate}}

go 1.21
