package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/protocol"
)

// numbered is a name that ends in a number of ours.
var numbered = regexp.MustCompile(`^(.*)-(\d{1,6})$`)

// FreeName is a name like that of a job which the user hasn't used yet.
func (c *Client) FreeName(ctx context.Context, j *Job) (string, error) {
	for name := range NamesLike(j.Name) {
		_, err := c.brief(ctx, j.User, name, v1.ObjectName(j.User, name))
		if e, missing := errors.AsType[*NotFoundError](err); missing && (e.Unsure == nil || errors.Is(e.Unsure, ErrNoController)) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", NoFreeName(j)
}

// NoFreeName says that all names like that of a job are used.
func NoFreeName(j *Job) error {
	return hint.Errorf("choose one with --as", "found no unused name for a copy of %s", j.Title())
}

// NamesLike are names like that of a job, in the order in which they are tried: train-2, train-3.
func NamesLike(name string) iter.Seq[string] {
	base, n := name, 1
	if m := numbered.FindStringSubmatch(name); m != nil {
		base = m[1]
		n, _ = strconv.Atoi(m[2]) // digits, few enough
	}
	return func(yield func(string) bool) {
		for i := range 1000 {
			if !yield(fmt.Sprintf("%s-%d", base, n+1+i)) {
				return
			}
		}
	}
}

// Clone is the job file of a job under another name; secrets reports whether some are masked in it.
func Clone(j *Job, as string) (text []byte, secrets bool, err error) {
	if j.Config == "" {
		return nil, false, hint.Errorf("only jobs that were submitted by paictl or OpenPAI can be cloned", "%s has no job file", j.Title())
	}
	text, err = SetName(j.Title(), []byte(j.Config), as)
	return text, bytes.Contains(text, []byte(protocol.Masked)), err
}
