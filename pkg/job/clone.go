package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// numbered matches a name that ends in a hyphen and a number, like the names that FreeName makes.
var numbered = regexp.MustCompile(`^(.*)-(\d{1,6})$`)

// FreeName returns a name that is similar to the job's name, and that the owner of the clone hasn't used yet.
func (c *Client) FreeName(ctx context.Context, j *Job, owner string) (string, error) {
	base, n := j.Name, 1
	if m := numbered.FindStringSubmatch(j.Name); m != nil {
		base = m[1]
		n, _ = strconv.Atoi(m[2]) // at most six digits
	}
	for range 1000 {
		n++
		name := fmt.Sprintf("%s-%d", base, n)
		_, err := c.brief(ctx, owner, name, v1.ObjectName(owner, name))
		if e, missing := errors.AsType[*NotFoundError](err); missing && (e.Unsure == nil || errors.Is(e.Unsure, ErrNoController)) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", hint.Errorf("choose one with --as", "found no unused name for a copy of %s", j.Title())
}

// Clone returns the job file of a job with another name. secrets reports whether the file contains masked secrets.
func Clone(j *Job, as string) (text []byte, secrets bool, err error) {
	if j.Config == "" {
		return nil, false, hint.Errorf("only jobs that were submitted by paictl or OpenPAI can be cloned", "%s has no job file", j.Title())
	}
	text, err = SetName(j.Title(), []byte(j.Config), as)
	return text, bytes.Contains(text, []byte(protocol.Masked)), err
}
