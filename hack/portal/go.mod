// The bundler of the portal's pages, apart from the program so that its library doesn't become one of paictl.
module github.com/openpai/paictl/hack/portal

go 1.26.0

require github.com/evanw/esbuild v0.28.2

require golang.org/x/sys v0.0.0-20220715151400-c0bba94af5f8 // indirect
