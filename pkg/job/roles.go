package job

import (
	"slices"

	v1 "github.com/openpai/paictl/pkg/framework/v1"
)

// RoleName is what the user called a role of a Framework.
func RoleName(r *v1.TaskRole) string {
	if name := r.Task.Pod.Annotations[v1.AnnotationTaskRole]; name != "" {
		return name
	}
	return r.Name
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
			if name := a.Tasks[i].Role; !slices.Contains(out, name) {
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
			if r := &j.Framework.Spec.TaskRoles[i]; RoleName(r) == name || r.Name == name {
				return r.Name
			}
		}
		return ""
	}
	for _, a := range j.Archived.Attempts {
		for i := range a.Tasks {
			if t := &a.Tasks[i]; t.Role == name || t.RoleObject == name {
				return t.RoleObject
			}
		}
	}
	return ""
}
