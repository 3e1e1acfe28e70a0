package job

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func TestNamesOfRolesStayInTheirLine(t *testing.T) {
	const written = "wor\nker\u2028x\x1b[2J"
	const shown = "wor ker x[2J"
	role := v1.TaskRole{Name: "a", Task: v1.Task{Pod: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationTaskRole: written}}}}}
	live := Of(&v1.Framework{Spec: v1.FrameworkSpec{TaskRoles: []v1.TaskRole{role}}})
	past := Past(&api.JobDetail{Attempts: []api.Attempt{{Tasks: []api.TaskAttempt{{Role: written, RoleObject: "a"}}}}})
	for name, j := range map[string]*Job{"live": live, "archived": past} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, []string{shown}, j.RoleNames())
			for _, name := range []string{shown, written, "a"} {
				assert.Equal(t, "a", j.RoleObject(name), "%q", name)
			}
			assert.Empty(t, j.RoleObject("b"))
			assert.Empty(t, j.RoleObject(""))
		})
	}
	role.Task.Pod.Annotations[v1.AnnotationTaskRole] = "\n\x1b"
	assert.Equal(t, "a", RoleName(&role), "a name of which nothing can be shown")
}
