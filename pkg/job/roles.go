package job

import (
	"cmp"
	"slices"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/ui/terminal"
)

// RoleName returns the user's name of a role in a Framework. It makes the name safe to print on one line, because any user may have written the name.
func RoleName(r *v1.TaskRole) string {
	if name := terminal.Line(r.Task.Pod.Annotations[v1.AnnotationTaskRole]); name != "" {
		return name
	}
	return r.Name
}

// isRole reports whether a user who entered name means the role. name may be the displayed name, the name in the job file or the Framework's name.
func isRole(r *v1.TaskRole, name string) bool { return roleOf(r).is(name) }

// is reports whether a user who entered name means the role. name may be the displayed name, the name in the job file or the Framework's name.
func (r *Role) is(name string) bool {
	return r.Name == name || r.written == name && name != "" || r.Object == name
}

// roleOf converts a role of a Framework to a Role.
func roleOf(r *v1.TaskRole) *Role {
	out := &Role{Name: RoleName(r), Object: r.Name, Tasks: int(r.TaskNumber), written: r.Task.Pod.Annotations[v1.AnnotationTaskRole],
		MinFailed: int(r.FrameworkAttemptCompletionPolicy.MinFailedTaskCount), MinSucceeded: int(r.FrameworkAttemptCompletionPolicy.MinSucceededTaskCount)}
	if cs := r.Task.Pod.Spec.Containers; len(cs) > 0 {
		out.Image = cs[0].Image
	}
	return out
}

// rolesOf returns all roles of a Framework, in the order of the job file.
func rolesOf(f *v1.Framework) []Role {
	out := []Role{}
	for i := range f.Spec.TaskRoles {
		out = append(out, *roleOf(&f.Spec.TaskRoles[i]))
	}
	return out
}

// file returns the parsed job file. If the file can't be read, because another version of paictl wrote it, the result is empty.
func (j *Job) file() *protocol.Job {
	if j.parsed == nil {
		if j.parsed, _ = protocol.ParseMasked("job.yaml", []byte(j.Config)); j.parsed == nil {
			j.parsed = &protocol.Job{}
		}
	}
	return j.parsed
}

// inOrder sorts the roles of a removed job in the order of its job file, because the history sorts them by name.
func (j *Job) inOrder(roles []Role) {
	if len(roles) < 2 {
		return
	}
	in := j.file().Roles
	at := func(r Role) int {
		return slices.IndexFunc(in, func(p protocol.Role) bool { return p.Name == r.written || p.Name == r.Name })
	}
	slices.SortStableFunc(roles, func(a, b Role) int { return cmp.Compare(at(a), at(b)) })
}

// RoleNames returns the names of a job's task roles, as written by the user, in the order of the job file.
func (j *Job) RoleNames() []string {
	var out []string
	for i := range j.Roles {
		if name := j.Roles[i].Name; j.Live || !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// RoleObject returns the Framework's name of a role that a user entered, or "" if the job has no such role.
func (j *Job) RoleObject(name string) string {
	for i := range j.Roles {
		if j.Roles[i].is(name) {
			return j.Roles[i].Object
		}
	}
	return ""
}
