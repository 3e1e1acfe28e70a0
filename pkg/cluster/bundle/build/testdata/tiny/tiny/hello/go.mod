module example.org/hello

go 1.26.0
