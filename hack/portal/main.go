// Command portal bundles the pages of the portal. It is a separate module, so that paictl doesn't depend on the bundler.
//
//	portal bundle      writes pkg/portal/built from pkg/portal/web
//	portal libraries   fetches the libraries that package-lock.json pins, and writes pkg/portal/web/libraries
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "portal:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	root, err := root()
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("usage: portal bundle|libraries")
	}
	switch args[0] {
	case "bundle":
		return write(root)
	case "libraries":
		return fetch(root)
	}
	return fmt.Errorf("%q is neither bundle nor libraries", args[0])
}

// root returns the root of the repository, which is two folders above the working directory.
func root() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root := filepath.Join(here, "..", "..")
	if _, err := os.Stat(filepath.Join(root, sources, "package.json")); err != nil {
		return "", fmt.Errorf("run it in hack/portal: %w", err)
	}
	return root, nil
}

func write(root string) error {
	files, err := bundle(root)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(root, built, name), data, 0o644); err != nil { //nolint:gosec // everyone may read it
			return err
		}
	}
	return nil
}
