package rules

import "slices"

// Submission holds the resources that a job requests. Its fields come from the rendered job, never from the text of the job file.
type Submission struct {
	VCs         []string // the virtual clusters of all of its tasks
	Priority    string   // "" is prod
	HostNetwork bool
	Storages    []string
	Group       string // the group whose quota it counts on; "" means no group
}

var priorities = []string{"oppo", "test", "prod", "crit"}

// Submit checks whether a subject may submit a job. It also applies to every operation that starts a job again. Even administrators need grants for
// storages.
func Submit(s *Subject, j Submission) error {
	if err := Class("job.submit", s); err != nil || s.Operator {
		return err
	}
	if len(j.VCs) == 0 {
		return forbidden("the job names no virtual cluster")
	}
	for _, vc := range j.VCs {
		if err := decideVC(s, Object{VC: vc}); err != nil {
			return err
		}
		if err := s.within(vc, j); err != nil {
			return err
		}
	}
	for _, storage := range j.Storages {
		if !slices.Contains(s.Grants.Storages, storage) {
			return forbidden("the storage %s isn't granted to you", storage)
		}
	}
	if j.Group != "" && !slices.Contains(s.Groups, j.Group) {
		return forbidden("you aren't in the group %s", j.Group)
	}
	return nil
}

// within checks the priority and the host network of a job against the person's grant for a virtual cluster.
func (s *Subject) within(vc string, j Submission) error {
	if s.Grants.Administrator {
		return nil
	}
	grant := s.Grants.VCs[vc]
	asked, most := rank(j.Priority), rank(grant.MaxPriority)
	switch {
	case asked < 0:
		return forbidden("%q is not a priority", j.Priority)
	case asked > most:
		return forbidden("the priority %s isn't granted to you in the virtual cluster %s", j.Priority, vc)
	case j.HostNetwork && !grant.HostNetwork:
		return forbidden("the machines' network isn't granted to you in the virtual cluster %s", vc)
	}
	return nil
}

// rank returns the index of a priority, starting with the lowest. It returns -1 for an unknown priority. "" means prod.
func rank(priority string) int {
	if priority == "" {
		priority = "prod"
	}
	return slices.Index(priorities, priority)
}

// Higher returns the higher of two priorities. "" means prod.
func Higher(a, b string) string {
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// UserView is the set of a person's fields that a subject may read.
type UserView struct {
	Whole     bool // otherwise name and e-mail
	Extension bool // the data that OpenPAI's clients stored with the person
}

// ViewUser returns the fields of a person that a subject may read.
func ViewUser(s *Subject, name string) UserView {
	if s.Guest() {
		return UserView{}
	}
	if s.Operator {
		return UserView{Whole: true, Extension: true}
	}
	own := name == s.Name
	secrets := !s.Token.Application || slices.Contains(s.Token.Scopes, ScopeSecrets)
	return UserView{Whole: own || s.Grants.Administrator, Extension: own || s.Grants.Administrator && secrets}
}

// ViewGroup reports whether a subject may read the grants of a group. Other subjects may read only the group's name and description.
func ViewGroup(s *Subject, name string) bool {
	return !s.Guest() && (s.Operator || s.Grants.Administrator || slices.Contains(s.Groups, name))
}
