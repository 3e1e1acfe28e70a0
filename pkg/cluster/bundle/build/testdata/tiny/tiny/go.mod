module example.org/pins/tiny

go 1.26.0

require example.org/hello v1.2.3

replace example.org/hello => ./hello
