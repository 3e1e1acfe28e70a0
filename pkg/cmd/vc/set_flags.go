package vc

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/scheduler/vc"
)

// maxFile is the maximum number of bytes that are read from stdin.
const maxFile = 1 << 20

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the definition: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the definition is longer than %d bytes", maxFile)
	}
	return data, nil
}

// request converts the flags to a request. given reports whether the flags request any change.
func (s *setFlags) request(help string) (r vc.Request, given bool, err error) {
	r = vc.Request{Pin: s.pin, Unpin: s.unpin, Policy: s.policy, TakeFrom: s.takeFrom, Delete: s.delete}
	if s.policy != "" && !slices.Contains(cell.PolicyNames(), s.policy) {
		return r, false, cmdutil.Usagef("there is no policy %q; the policies are %s (see %s)", s.policy, strings.Join(cell.PolicyNames(), ", "), help)
	}
	for _, text := range s.cells {
		name, n, err := pair("--cells", text, help)
		if err != nil {
			return r, false, err
		}
		if n == nil {
			return r, false, cmdutil.Usagef("--cells %s: write TYPE=N (see %s)", text, help)
		}
		r.Cells = append(r.Cells, vc.Cells{CellType: name, CellNumber: *n})
	}
	if r.Users, err = pairs("--quota-user", s.users, help); err != nil {
		return r, false, err
	}
	if r.Groups, err = pairs("--quota-group", s.groups, help); err != nil {
		return r, false, err
	}
	if s.perUser < 0 || s.perGroup < 0 {
		return r, false, cmdutil.Usagef("a quota is 0 or more (see %s)", help)
	}
	if s.perUserSet {
		r.PerUser = &s.perUser
	}
	if s.groupSet {
		r.PerGroup = &s.perGroup
	}
	given = len(r.Cells)+len(r.Pin)+len(r.Unpin)+len(r.Users)+len(r.Groups) > 0 || s.perUserSet || s.groupSet || s.policy != ""
	return r, given, nil
}

func pairs(flag string, list []string, help string) (map[string]*int, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]*int{}
	for _, text := range list {
		name, n, err := pair(flag, text, help)
		if err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, nil
}

// pair parses NAME=N. For NAME=default, the number is nil.
func pair(flag, text, help string) (string, *int, error) {
	at := strings.LastIndex(text, "=")
	if at <= 0 {
		return "", nil, cmdutil.Usagef("%s %s: write NAME=N (see %s)", flag, text, help)
	}
	name, value := strings.TrimSpace(text[:at]), strings.TrimSpace(text[at+1:])
	if value == "default" {
		return name, nil, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return "", nil, cmdutil.Usagef("%s %s: %q is not 0 or a positive number (see %s)", flag, text, value, help)
	}
	return name, &n, nil
}
