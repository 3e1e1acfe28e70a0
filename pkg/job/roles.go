package job

import (
	"slices"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/terminal"
)

// RoleName is what the user called a role of a Framework, fit for one line: anyone may have written it.
func RoleName(r *v1.TaskRole) string {
	if name := terminal.Line(r.Task.Pod.Annotations[v1.AnnotationTaskRole]); name != "" {
		return name
	}
	return r.Name
}

// isRole reports whether a user means a role of a Framework, by the name that is shown, the one that was written or the
// Framework's.
func isRole(r *v1.TaskRole, name string) bool {
	return RoleName(r) == name || r.Task.Pod.Annotations[v1.AnnotationTaskRole] == name && name != "" || r.Name == name
}

// RoleNames are the names of a job's task roles as the user wrote them, in the order of the job file.
func (j *Job) RoleNames() []string {
	var out []string
	if j.Live() {
		for i := range j.Framework.Spec.TaskRoles {
			out = append(out, RoleName(&j.Framework.Spec.TaskRoles[i]))
		}
		return out
	}
	for _, a := range j.Archived.Attempts {
		for i := range a.Tasks {
			if name := terminal.Line(a.Tasks[i].Role); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// RoleObject is the Framework's name of a role that the user names; "" where there is no such role.
func (j *Job) RoleObject(name string) string {
	if j.Live() {
		for i := range j.Framework.Spec.TaskRoles {
			if r := &j.Framework.Spec.TaskRoles[i]; isRole(r, name) {
				return r.Name
			}
		}
		return ""
	}
	for _, a := range j.Archived.Attempts {
		for i := range a.Tasks {
			if t := &a.Tasks[i]; terminal.Line(t.Role) == name || t.Role == name || t.RoleObject == name {
				return t.RoleObject
			}
		}
	}
	return ""
}
