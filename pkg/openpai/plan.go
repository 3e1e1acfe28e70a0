package openpai

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// These are the actions of steps.
const (
	Add      = "add"      // it doesn't exist
	Complete = "complete" // an earlier run didn't finish it
	Keep     = "keep"     // it exists, and stays as it is
	LeaveOut = "leave out"
)

// These are the kinds of steps.
const (
	KindGroup  = "group"
	KindUser   = "user"
	KindSecret = "secret"
)

// Step is the planned change for one group or person. Its exported fields contain no secrets.
type Step struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Action string `json:"action"`
	// Notes lists the data that isn't taken over, with the reasons.
	Notes []string `json:"notes,omitempty"`

	group     *v1.GroupSpec
	user      people.NewUser
	keys      []v1.SSHKey
	extension people.Extension
	// taken records which data of the person has been taken over when the step is done.
	taken string
}

func (s *Step) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Options specifies how the data of OpenPAI is interpreted.
type Options struct {
	// SeeJobs lets the members of a group see each other's jobs. In OpenPAI, all people could see all jobs.
	SeeJobs bool
	// Provider is the sign-in provider to which the external names of groups belong. If it is empty, the external names are left out.
	Provider string
	// Passwords takes over the hashes of passwords. It must not be set if people signed in with OIDC, because the hashes are then hashes of ids that
	// other people may know.
	Passwords bool
}

// Plan compares the data of OpenPAI with the current state, and returns the steps.
func Plan(ctx context.Context, src *Source, d *people.Directory, o Options) ([]Step, error) {
	var out []Step
	for _, name := range slices.Sorted(maps.Keys(src.Unread)) {
		out = append(out, Step{Kind: KindSecret, Name: name, Action: LeaveOut, Notes: []string{src.Unread[name]}})
	}
	have, groups := here(d), places{}
	for name, g := range have {
		groups[name] = noMore(&g, &v1.GroupSpec{})
	}
	for i := range src.Groups {
		out = append(out, planGroup(&src.Groups[i], have, o, groups))
	}
	taken := map[string]string{}
	for i := range src.Users {
		u := &src.Users[i]
		s, err := planUser(ctx, u, src.Tokens[u.Name], d, groups, o)
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

// from is the mark of people who were imported from OpenPAI.
const from = "openpai"

// These are the values of the mark that records which data of a person has been taken over.
const (
	takenAll  = "all"
	takenBare = "all but the password"
)

func planUser(ctx context.Context, u *User, tokens int, d *people.Directory, groups places, o Options) (Step, error) {
	s := Step{Kind: KindUser, Name: u.Name, Action: Add, user: people.NewUser{Name: u.Name, Email: u.Email, From: from, Groups: []string{}}}
	s.join(compact(u.Groups), groups)
	s.taken = takenBare
	if o.Passwords {
		s.taken = takenAll
	}
	s.password(u, o)
	if tokens > 0 {
		s.note("%s: %s makes new ones with paictl token create", plural.Of(tokens, "application token"), u.Name)
	}
	s.take(u.Extension)
	p, err := d.Person(u.Name)
	if err == nil {
		s.Notes = nil
		return s, s.complete(ctx, d, p)
	}
	bare := people.NewUser{Name: u.Name, Email: u.Email, Groups: []string{}}
	err = d.CheckNew(bare)
	if bare.Email = ""; err != nil && d.CheckNew(bare) == nil {
		s.note("the e-mail address is left out: it is not valid")
		s.user.Email, err = "", nil
	}
	if err != nil {
		s.Action, s.Notes = LeaveOut, []string{err.Error()}
	}
	return s, nil
}

// complete plans the step for a person who already exists. If an earlier run created the person, the step finishes that run. Other people stay
// unchanged. The step doesn't restore data that was removed later, such as a revoked key, or the password of a person with a provider's identity.
func (s *Step) complete(ctx context.Context, d *people.Directory, p *people.Person) error {
	s.Action = Keep
	if p.User.Annotations[people.AnnotationFrom] != from {
		s.note("a user of that name already exists, and stays as is")
		return nil
	}
	taken := p.User.Annotations[people.AnnotationTaken]
	if taken == takenAll || len(p.User.Spec.Identities) > 0 {
		s.user.Hash = ""
	}
	if taken != "" {
		s.keys, s.extension = nil, nil
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
	if s.user.Hash != "" || taken == "" {
		s.Action = Complete
	}
	return nil
}
