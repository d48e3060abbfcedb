module example.com/{{crate}}

go 1.21
