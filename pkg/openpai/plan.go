package openpai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// What is done.
const (
	Add      = "add"      // it isn't there
	Complete = "complete" // an earlier run didn't finish it
	Keep     = "keep"     // it is there, and stays as it is
	LeaveOut = "leave out"
)

// Kinds of steps.
const (
	KindGroup  = "group"
	KindUser   = "user"
	KindSecret = "secret"
)

// Step is what is done for one group or person. Nothing in what is shown of it is secret.
type Step struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Action string `json:"action"`
	// Notes say what isn't taken, and why.
	Notes []string `json:"notes,omitempty"`

	group     *v1.GroupSpec
	user      people.NewUser
	keys      []v1.SSHKey
	extension people.Extension
}

func (s *Step) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Options say how OpenPAI's words are meant.
type Options struct {
	// SeeJobs lets members of a group see each other's jobs, as everyone could in OpenPAI.
	SeeJobs bool
	// Provider of sign-ins is the one that knows the external names of groups; "": they are left out.
	Provider string
}

// Plan works out what is to be done, from what is there now.
func Plan(ctx context.Context, src *Source, d *people.Directory, o Options) ([]Step, error) {
	var out []Step
	for _, name := range slices.Sorted(maps.Keys(src.Unread)) {
		out = append(out, Step{Kind: KindSecret, Name: name, Action: LeaveOut, Notes: []string{src.Unread[name]}})
	}
	groups := map[string]bool{}
	for i := range src.Groups {
		s := planGroup(&src.Groups[i], d, o)
		groups[s.Name] = s.Action != LeaveOut
		out = append(out, s)
	}
	taken := map[string]string{}
	for i := range src.Users {
		u := &src.Users[i]
		s, err := planUser(ctx, u, d, func(name string) bool {
			_, err := d.Group(name)
			return err == nil || groups[name] || name == v1.GroupDefault
		})
		if err != nil {
			return nil, err
		}
		if other := taken[v1.FoldName(u.Name)]; other != "" {
			s = Step{Kind: KindUser, Name: u.Name, Action: LeaveOut, Notes: []string{"the name differs from " + other + " in case only"}}
		}
		taken[v1.FoldName(u.Name)] = u.Name
		out = append(out, s)
	}
	return out, nil
}

func planGroup(g *Group, d *people.Directory, o Options) Step {
	s := Step{Kind: KindGroup, Name: g.Name, Action: Add}
	if !v1.ValidName(g.Name) {
		s.Action = LeaveOut
		s.note("the name must begin and end with a letter or digit, and have at most %d characters", v1.MaxName)
		return s
	}
	if have, err := d.Group(g.Name); err == nil || g.Name == v1.GroupDefault {
		s.Action = Keep
		if err == nil {
			s.missing(g, &have.Spec)
		} else {
			s.missing(g, &v1.GroupSpec{Name: g.Name, VirtualClusters: []v1.VCGrant{{Name: "default"}}}) // as it is made
		}
		return s
	}
	spec := &v1.GroupSpec{Name: g.Name, Description: g.Description, Administrator: g.ACLs.Admin, Storages: compact(g.ACLs.Storages)}
	if len(spec.Description) > 1024 {
		spec.Description = strings.ToValidUTF8(spec.Description[:1024], "")
		s.note("the description is cut")
	}
	for _, vc := range compact(g.ACLs.VirtualClusters) {
		spec.VirtualClusters = append(spec.VirtualClusters, v1.VCGrant{Name: vc, SeeJobs: o.SeeJobs})
	}
	switch {
	case g.External == "":
	case o.Provider == "":
		s.note("the external name %s is left out: name its provider of sign-ins with --provider", g.External)
	default:
		spec.External = []v1.ExternalGroup{{Provider: o.Provider, Name: g.External}}
	}
	if text, err := json.Marshal(g.Extension); err == nil && len(g.Extension) > 0 {
		spec.Extension = &runtime.RawExtension{Raw: text}
	}
	s.group = spec
	return s
}

func compact(names []string) []string {
	var out []string
	for _, n := range names {
		if n != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// missing notes what a group granted in OpenPAI and doesn't grant here.
func (s *Step) missing(g *Group, have *v1.GroupSpec) {
	var flags []string
	for _, vc := range compact(g.ACLs.VirtualClusters) {
		if !have.AllVirtualClusters && !slices.ContainsFunc(have.VirtualClusters, func(v v1.VCGrant) bool { return v.Name == vc }) {
			flags = append(flags, "--add-vc "+vc)
		}
	}
	for _, storage := range compact(g.ACLs.Storages) {
		if !slices.Contains(have.Storages, storage) {
			flags = append(flags, "--add-storage "+storage)
		}
	}
	if len(flags) > 0 {
		s.note("it granted more in OpenPAI: paictl group set %s %s", s.Name, strings.Join(flags, " "))
	}
	if g.ACLs.Admin && !have.Administrator {
		s.note("it made administrators in OpenPAI, and doesn't here")
	}
}

// from is what people who were taken over bear.
const from = "openpai"

func planUser(ctx context.Context, u *User, d *people.Directory, there func(group string) bool) (Step, error) {
	s := Step{Kind: KindUser, Name: u.Name, Action: Add, user: people.NewUser{Name: u.Name, Email: u.Email, From: from, Groups: []string{}}}
	for _, g := range compact(u.Groups) {
		if there(g) {
			s.user.Groups = append(s.user.Groups, g)
		} else {
			s.note("the group %s isn't there", g)
		}
	}
	s.password(u)
	s.take(u.Extension)
	p, err := d.Person(u.Name)
	if err == nil {
		s.Notes = nil
		return s, s.complete(ctx, d, p)
	}
	bare := people.NewUser{Name: u.Name, Email: u.Email, Groups: []string{}}
	err = d.CheckNew(bare)
	if bare.Email = ""; err != nil && d.CheckNew(bare) == nil {
		s.note("the e-mail address is left out: it is none")
		s.user.Email, err = "", nil
	}
	if err != nil {
		s.Action, s.Notes = LeaveOut, []string{err.Error()}
	}
	return s, nil
}

// complete is for a person who is there: what an earlier run has begun is finished, and others stay as they are.
func (s *Step) complete(ctx context.Context, d *people.Directory, p *people.Person) error {
	s.Action = Keep
	if p.User.Annotations[people.AnnotationFrom] != from {
		s.note("someone of that name is there, and stays as is")
		return nil
	}
	have, err := d.Extension(ctx, s.Name)
	if err != nil {
		return err
	}
	for key := range have {
		delete(s.extension, key)
	}
	if len(p.User.Spec.SSHKeys) > 0 {
		s.keys = nil
	}
	password, err := d.Password(ctx, p)
	if err != nil && !errors.Is(err, people.ErrNoUser) {
		return err
	}
	if password != nil {
		s.user.Hash = ""
	}
	if s.user.Hash != "" || len(s.extension) > 0 || len(s.keys) > 0 {
		s.Action = Complete
	}
	return nil
}
