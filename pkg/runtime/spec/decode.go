package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

// Limits that real jobs don't reach. A larger spec is invalid.
const (
	maxSize  = 8 << 20 // a Secret holds 1 MiB
	maxTasks = 100_000
	maxPorts = 10_000 // of one label
)

var (
	// Names of roles and ports become parts of variable names.
	namePattern   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	objectPattern = regexp.MustCompile(`^[a-z0-9]{1,63}$`)
)

// Load reads a spec from a file and decodes it.
func Load(path string) (*Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	s, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Decode decodes a spec. It returns an error for unknown fields. Otherwise, an old runtime would silently ignore a setting from
// a newer paictl. Errors contain only names and numbers of the spec, because commands may contain secrets.
func Decode(data []byte) (*Spec, error) {
	if len(data) > maxSize {
		return nil, fmt.Errorf("the spec is larger than %d bytes", maxSize)
	}
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, jsonError(err)
	}
	if v.Version != Version {
		return nil, fmt.Errorf("the spec has version %d, but this runtime supports %d: the images of pai-runtime and paictl don't match", v.Version, Version)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	s := &Spec{}
	if err := d.Decode(s); err != nil {
		return nil, jsonError(err)
	}
	return s, s.check()
}

// jsonError returns an error with the position of err. It omits the text, because the text may be part of a command.
func jsonError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("the spec isn't JSON, at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("the spec's field %q is not a %s", kind.Field, kind.Type)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the spec is incomplete")
	}
	return fmt.Errorf("the spec: %w", err) // an unknown field's name
}

func (s *Spec) check() error {
	if s.User == "" || s.Job == "" || s.Framework == "" {
		return errors.New("the spec has no user, job or framework")
	}
	if len(s.Roles) == 0 {
		return errors.New("the spec has no roles")
	}
	if s.BarrierTimeoutSec < 0 || s.GracePeriodSec < 0 {
		return errors.New("the spec has a negative time")
	}
	if s.PortStart < 0 || s.PortEnd > 65536 || s.PortEnd < s.PortStart {
		return fmt.Errorf("the spec's ports %d to %d are not a range", s.PortStart, s.PortEnd)
	}
	if c := s.Code; c != nil && (c.Dir == "" || !filepath.IsAbs(c.Dir) || c.Size < 0) {
		return errors.New("the spec's code has no absolute folder, or no size")
	}
	names, objects := map[string]bool{}, map[string]bool{}
	for i := range s.Roles {
		r := &s.Roles[i]
		if names[r.Name] || objects[r.Object] {
			return fmt.Errorf("the spec has role %q twice", r.Name)
		}
		names[r.Name], objects[r.Object] = true, true
		if err := r.check(); err != nil {
			return fmt.Errorf("role %q of the spec: %w", r.Name, err)
		}
	}
	if s.Tasks() > maxTasks {
		return fmt.Errorf("the spec has more than %d tasks", maxTasks)
	}
	return nil
}

func (r *Role) check() error {
	if !namePattern.MatchString(r.Name) {
		return errors.New("its name isn't made of letters, digits and _")
	}
	if !objectPattern.MatchString(r.Object) {
		return fmt.Errorf("its object name %q isn't made of a-z and 0-9", r.Object)
	}
	if r.Instances < 0 || r.Instances > maxTasks || r.GPU < 0 {
		return errors.New("an impossible number of instances or GPUs")
	}
	labels := map[string]bool{}
	for _, p := range r.Ports {
		if !namePattern.MatchString(p.Label) || labels[p.Label] {
			return fmt.Errorf("port label %q occurs twice or isn't made of letters, digits and _", p.Label)
		}
		labels[p.Label] = true
		if p.Count < 0 || p.Count > maxPorts {
			return fmt.Errorf("%d ports of label %q", p.Count, p.Label)
		}
	}
	if len(r.Exec) > 0 && r.Exec[0] == "" {
		return errors.New("its program has no name")
	}
	if len(r.Exec) == 0 && r.Command == "" {
		return errors.New("it has neither commands nor a program")
	}
	return nil
}

// Tasks returns the total number of tasks of all roles.
func (s *Spec) Tasks() int {
	n := 0
	for i := range s.Roles {
		n += s.Roles[i].Instances
	}
	return n
}

// Role returns the index of the role with this name in the Framework, or -1.
func (s *Spec) Role(object string) int {
	for i := range s.Roles {
		if s.Roles[i].Object == object {
			return i
		}
	}
	return -1
}
