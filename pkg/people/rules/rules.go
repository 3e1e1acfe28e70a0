// Package rules defines permissions: a table of rules, and functions that apply the rules. In: a subject, which is a person with the token of a
// request, and the requested thing. Out: nil, or an error that explains why the request is rejected. The package sends no requests and imports no
// other package of paictl, so that the whole table can be tested.
package rules

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Scope limits the permissions of an application token. It never extends the permissions of the person.
type Scope string

// Scopes of application tokens. A session has all scopes.
const (
	ScopeRead    Scope = "read"
	ScopeSubmit  Scope = "submit"
	ScopeAdmin   Scope = "admin"
	ScopeSecrets Scope = "secrets" // credentials of storages and jobs; must be requested explicitly
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeSubmit, ScopeAdmin, ScopeSecrets} }

// DefaultScopes returns the scopes of an application token that is created without explicit scopes.
func DefaultScopes() []Scope { return []Scope{ScopeRead, ScopeSubmit} }

// ParseScopes converts names to scopes, without duplicates. It returns an error for an unknown name.
func ParseScopes(names []string) ([]Scope, error) {
	var out []Scope
	for _, name := range names {
		if !slices.Contains(Scopes(), Scope(name)) {
			return nil, fmt.Errorf("%q is not a scope: there are read, submit, admin and secrets", name)
		}
		if !slices.Contains(out, Scope(name)) {
			out = append(out, Scope(name))
		}
	}
	return out, nil
}

// Grants are the combined grants of all groups of a person.
type Grants struct {
	Administrator bool            `json:"administrator"`
	AllVCs        bool            `json:"allVirtualClusters"`
	VCs           map[string]VC   `json:"virtualClusters"`
	Storages      []string        `json:"storages"`
	Pages         map[string]bool `json:"pages,omitempty"`
}

// VC holds a person's permissions in one virtual cluster.
type VC struct {
	SeeJobs     bool   `json:"seeJobs"`
	MaxPriority string `json:"maxPriority,omitempty"` // "" is prod
	HostNetwork bool   `json:"hostNetwork,omitempty"`
}

// MayUse reports whether the person may submit jobs to a virtual cluster.
func (g *Grants) MayUse(vc string) bool {
	_, granted := g.VCs[vc]
	return vc != "" && (g.Administrator || g.AllVCs || granted)
}

// Subject is a person and the token of a request. The zero Subject is a guest. A disabled or removed person is never a Subject.
type Subject struct {
	Name   string
	Groups []string
	Grants Grants
	Token  Token
	// Operator is set for requests with the cluster's kubeconfig. An operator may do everything. Name is then the person for whom the operator acts,
	// or empty. Requests over the network never set Operator.
	Operator bool
}

// Token holds the fields of a request's token that rules depend on. The zero Token is a session.
type Token struct {
	ID          string
	Application bool
	Scopes      []Scope // the scopes of an application token
}

// has reports whether a token has a scope. A session has every scope.
func (t *Token) has(scope Scope) bool { return !t.Application || slices.Contains(t.Scopes, scope) }

// Guest reports whether the request came neither from a person nor from an operator.
func (s *Subject) Guest() bool { return s == nil || s.Name == "" && !s.Operator }

// Kind is the kind of a Thing.
type Kind string

// The kinds of Things.
const (
	KindJob     Kind = "job"
	KindCode    Kind = "code"
	KindUsage   Kind = "usage"
	KindQueue   Kind = "queue"
	KindUser    Kind = "user"
	KindGroup   Kind = "group"
	KindToken   Kind = "token"
	KindVC      Kind = "virtual-cluster"
	KindStorage Kind = "storage"
	KindAlert   Kind = "alert"
	KindKube    Kind = "kubernetes"
	KindAudit   Kind = "audit"
	KindPage    Kind = "page"

	KindTemplate Kind = "template"
	KindAction   Kind = "action"
	KindSilence  Kind = "silence"
)

// Verb is an operation on a thing. The audit log uses the same names.
type Verb string

// Object is the object of a request. Its fields come from the stored object, never from the request.
type Object struct {
	Kind    Kind
	Owner   string // person it belongs to
	VC      string
	Name    string
	Page    string
	Storage string
	// Public and Groups determine who can read a template. Only administrators may change an Official template.
	Public   bool
	Groups   []string
	Official bool
	// BuiltIn is set for a template that is part of the program. Even an operator can't change such a template.
	BuiltIn bool
}

// Subjects selects a rule's subjects.
type Subjects uint8

// Subjects that rules allow. Administrators are always included, unless a comment excludes them.
const (
	Never          Subjects = iota // not even an administrator
	Open                           // guests, too
	Signed                         // everyone who is signed in
	Self                           // the owner of the thing
	SelfOnly                       // the owner of the thing, and no administrator
	SelfHidden                     // like SelfOnly; others get ErrHidden
	Owner                          // the owner of the job; people who see it get ErrForbidden, others ErrHidden
	OwnerOnly                      // like Owner, without administrators
	OwnerOrSees                    // the owner of the job, and people who see the jobs of its virtual cluster
	SelfOrVC                       // the owner; without an owner, people with a grant for its virtual cluster
	GrantedVC                      // only the owner, with a grant for the virtual cluster
	GrantedStorage                 // people with a grant for the storage; administrators need one, too
	GrantedPage                    // people with a grant for the page
	Author                         // the author of the template; people it is shared with get ErrForbidden, others ErrHidden
	Shared                         // the author of the template, and people it is shared with
	Administrator
)

// Rule is one row of the table.
type Rule struct {
	ID       string
	Subjects Subjects
	Verb     Verb
	Kind     Kind
	// Application allows application tokens that have Scope, or all application tokens if Scope is empty. Sessions are always allowed.
	Application bool
	Scope       Scope
}

// Changes reports whether the rule covers a change, or access to a job's container. The audit log also contains rejected requests under such a rule.
func (r *Rule) Changes() bool {
	switch r.Verb {
	case "", "list", "watch", "count", "read", "config", "logs", "head", "check":
		return false
	}
	return true
}

// Errors of Class and Decide.
var (
	ErrGuest     = errors.New("sign in first")
	ErrForbidden = errors.New("forbidden")
	// ErrHidden hides the existence of a thing from the subject. The response is the same as for a missing thing.
	ErrHidden = errors.New("not found")
)

// ForbiddenError is an ErrForbidden with the reason.
type ForbiddenError struct{ Why string }

func (e *ForbiddenError) Error() string { return e.Why }

// Is makes errors.Is(err, ErrForbidden) true.
func (e *ForbiddenError) Is(target error) bool { return target == ErrForbidden }

func forbidden(format string, args ...any) error {
	return &ForbiddenError{Why: fmt.Sprintf(format, args...)}
}

// Class checks the part of a rule that doesn't depend on the thing: the sign-in, the kind of token, the scope, and the need for an administrator.
func Class(id string, s *Subject) error {
	r, known := byID[id]
	if !known {
		return forbidden("there is no rule %q", id)
	}
	switch {
	case r.Subjects == Open:
		return nil
	case r.Subjects == Never:
		return ErrHidden
	case s != nil && s.Operator:
		return nil
	case s.Guest():
		return ErrGuest
	case s.Token.Application && !r.Application:
		return forbidden("an application token may not do this: sign in")
	case r.Scope != "" && !s.Token.has(r.Scope):
		return forbidden("the token doesn't have the scope %s", r.Scope)
	case r.Subjects == Administrator && !s.Grants.Administrator:
		return forbidden("only an administrator may do this")
	}
	return nil
}

// Decide applies a rule to a subject and a thing. It returns nil if the rule allows the request. Otherwise the error is ErrGuest, a ForbiddenError or
// ErrHidden.
func Decide(id string, s *Subject, t Object) error {
	if err := Class(id, s); err != nil {
		return err
	}
	if t.BuiltIn && byID[id].Subjects == Author {
		return forbidden("the template is built in: copy it, and change the copy")
	}
	if s != nil && s.Operator {
		return nil
	}
	own := !s.Guest() && t.Owner == s.Name
	switch byID[id].Subjects {
	case Open, Signed, Administrator:
		return nil
	case Self:
		if own || s.Grants.Administrator {
			return nil
		}
		return forbidden("it belongs to another person")
	case SelfOnly:
		if own {
			return nil
		}
		return forbidden("it belongs to another person")
	case SelfHidden:
		if own {
			return nil
		}
		return ErrHidden
	case Owner, OwnerOnly, OwnerOrSees:
		return decideJob(byID[id].Subjects, s, t)
	case SelfOrVC:
		if s.Grants.Administrator || own || t.Owner == "" && s.Grants.MayUse(t.VC) {
			return nil
		}
		return forbidden("it belongs to another person, or to a virtual cluster that isn't granted to you")
	case GrantedVC:
		return decideVC(s, t)
	case GrantedStorage:
		if t.Storage != "" && slices.Contains(s.Grants.Storages, t.Storage) {
			return nil
		}
		return forbidden("the storage %s isn't granted to you", t.Storage)
	case GrantedPage:
		if t.Page != "" && (s.Grants.Administrator || s.Grants.Pages[t.Page]) {
			return nil
		}
		return forbidden("the page isn't granted to you")
	case Author, Shared:
		return decideTemplate(byID[id].Subjects, s, t)
	case Never:
	}
	return ErrHidden
}

func decideJob(who Subjects, s *Subject, t Object) error {
	switch {
	case t.Owner != "" && t.Owner == s.Name:
		return nil
	case !Visible(s).Allows(t.Owner, t.VC):
		return ErrHidden
	case who == OwnerOrSees:
		return nil
	case who == Owner && s.Grants.Administrator:
		return nil
	}
	return forbidden("the job belongs to another person")
}

func decideVC(s *Subject, t Object) error {
	if t.Owner != "" && t.Owner != s.Name {
		return forbidden("you can do this for yourself alone")
	}
	if !s.Grants.MayUse(t.VC) {
		return forbidden("the virtual cluster %s isn't granted to you", cmp.Or(t.VC, "default"))
	}
	return nil
}

func decideTemplate(who Subjects, s *Subject, t Object) error {
	switch {
	case s.Grants.Administrator && who == Author && (t.Official || t.Owner != s.Name) && !s.Token.has(ScopeAdmin): // because other people run it
		return forbidden("the token doesn't have the scope %s", ScopeAdmin)
	case s.Grants.Administrator:
		return nil
	case t.Owner != s.Name && !t.Public && !slices.ContainsFunc(t.Groups, func(g string) bool { return slices.Contains(s.Groups, g) }):
		return ErrHidden
	case who == Shared:
		return nil
	case t.Owner != s.Name:
		return forbidden("the template belongs to another person")
	case t.Official:
		return forbidden("the template is an official example: only administrators can change it")
	}
	return nil
}

// Visibility describes the jobs that a subject may read. The zero Visibility matches no jobs.
type Visibility struct {
	All  bool     `json:"all,omitempty"`
	User string   `json:"user,omitempty"`
	VCs  []string `json:"virtualClusters,omitempty"` // sorted
}

// Visible returns the Visibility of a subject, which filters all lists of jobs.
func Visible(s *Subject) Visibility {
	if s.Guest() {
		return Visibility{}
	}
	v := Visibility{All: s.Operator || s.Grants.Administrator, User: s.Name}
	for _, name := range slices.Sorted(maps.Keys(s.Grants.VCs)) {
		if s.Grants.VCs[name].SeeJobs {
			v.VCs = append(v.VCs, name)
		}
	}
	return v
}

// Allows reports whether the subject may read a job with this owner and virtual cluster.
func (v Visibility) Allows(owner, vc string) bool {
	return v.All || owner != "" && owner == v.User || vc != "" && slices.Contains(v.VCs, vc)
}
