package main

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	wholeComment    = regexp.MustCompile(`^\s*#+( |$)`)
	trailingComment = regexp.MustCompile(`^([^#]*\s)# (.*)$`)
)

// readHashComments returns the comments of a shell script or a YAML file.
func readHashComments(text []byte, area area) []passage {
	b := paragraphs{area: area, indent: 3}
	for i, line := range strings.Split(string(text), "\n") {
		if at := wholeComment.FindString(line); at != "" {
			b.addLine(i+1, " "+line[len(at):])
			continue
		}
		b.stop()
		if m := trailingComment.FindStringSubmatch(line); m != nil && strings.Count(m[1], `"`)%2 == 0 && strings.Count(m[1], "'")%2 == 0 {
			b.single(i+1, m[2])
		}
	}
	return b.stop()
}

func readShell(_ string, text []byte) ([]passage, error) {
	return readHashComments(text, comments), nil
}

func readValues(_ string, text []byte) ([]passage, error) { return readHashComments(text, docs), nil }

var description = regexp.MustCompile(`"(?:description|title)":\s*("(?:[^"\\]|\\.)*")`)

// readSchema returns the descriptions of a JSON schema.
func readSchema(_ string, text []byte) ([]passage, error) {
	var out []passage
	for i, line := range strings.Split(string(text), "\n") {
		for _, m := range description.FindAllStringSubmatch(line, -1) {
			var value string
			if err := json.Unmarshal([]byte(m[1]), &value); err != nil {
				return nil, err
			}
			p := passage{area: docs}
			p.addLine(i+1, value)
			out = append(out, p)
		}
	}
	return out, nil
}
