// Command revive runs the linter revive, which is the part of golangci-lint that needs no types, with the rules of .golangci.yml. It reads the names
// of Go files from standard input, one folder in each line. It takes only seconds to build and to run. revive's own command isn't used, because it
// needs a module that some proxies don't serve.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mgechev/revive/config"
	"github.com/mgechev/revive/lint"
	"go.yaml.in/yaml/v3"
)

func main() {
	n, err := run(os.Stdin, os.Stdout, ".golangci.yml")
	if err != nil {
		fmt.Fprintln(os.Stderr, "revive:", err)
		os.Exit(2)
	}
	if n > 0 {
		os.Exit(1)
	}
}

// run lints the packages, and returns the number of findings.
func run(in io.Reader, out io.Writer, file string) (n int, err error) {
	conf, err := read(file)
	if err != nil {
		return 0, err
	}
	rules, err := config.GetLintingRules(conf, nil)
	if err != nil {
		return 0, err
	}
	packages, err := folders(in)
	if err != nil {
		return 0, err
	}
	if len(packages) == 0 {
		return 0, errors.New("no file was named")
	}
	linter := lint.New(os.ReadFile, 0)
	failures, err := linter.Lint(packages, rules, *conf)
	if err != nil {
		return 0, err
	}
	for f := range failures {
		if f.Confidence < conf.Confidence {
			continue
		}
		fmt.Fprintf(out, "%s: %s (%s)\n", f.Position.Start, f.Failure, f.RuleName)
		n++
	}
	return n, nil
}

// read returns the settings for revive in the configuration of golangci-lint.
func read(file string) (*lint.Config, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c struct {
		Linters struct {
			Settings struct {
				Revive struct {
					Rules []struct {
						Name      string
						Arguments []any
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(b, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	conf := config.Default()
	conf.Rules = lint.RulesConfig{}
	for _, r := range c.Linters.Settings.Revive.Rules {
		conf.Rules[r.Name] = lint.RuleConfig{Arguments: r.Arguments, Severity: lint.SeverityError}
	}
	if len(conf.Rules) == 0 {
		return nil, fmt.Errorf("%s has no rules of revive", file)
	}
	return conf, nil
}

// folders parses lines that contain a folder and the names of its files, separated by tabs. Each line describes a package.
func folders(in io.Reader) (packages [][]string, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		if len(words) < 2 {
			continue
		}
		var files []string
		for _, name := range words[1:] {
			files = append(files, filepath.Join(words[0], name))
		}
		packages = append(packages, files)
	}
	return packages, lines.Err()
}
