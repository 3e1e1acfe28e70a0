package job

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// firstImages returns repositories of images that users run commands in, beginning with the repositories that paictl provides. The machines also have
// other images, and most of those are parts of the platform.
func firstImages() []string {
	return []string{"examples-python", "pytorch", "tensorflow", "cuda", "python", "ubuntu", "debian", "busybox", "alpine"}
}

// Images returns the images that all machines for jobs have, so that a job doesn't have to pull them. Images that suit a first job come first. A
// kubelet reports only its 50 largest images.
func (c *Client) Images(ctx context.Context) ([]string, error) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read which images the machines hold: %w", err))
	}
	all := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return n.Labels[labelWorker] != "true" })
	if len(all) == 0 {
		return nil, nil
	}
	var out []string
	for i := range all[0].Status.Images {
		for _, name := range all[0].Status.Images[i].Names {
			if !strings.Contains(name, "@") && !slices.ContainsFunc(all[1:], func(n corev1.Node) bool { return !holds(&n, name) }) {
				out = append(out, name)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if d := suits(a) - suits(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(out), nil
}

func holds(n *corev1.Node, image string) bool {
	return slices.ContainsFunc(n.Status.Images, func(i corev1.ContainerImage) bool { return slices.Contains(i.Names, image) })
}

// suits returns the rank of an image. The better an image suits a first job, the lower is its rank.
func suits(image string) int {
	name, _, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if at := slices.Index(firstImages(), name); at >= 0 {
		return at
	}
	return len(firstImages())
}

// FirstImage returns the image that suits a first job best, or "" if none does. images must be a result of Images.
func FirstImage(images []string) string {
	if len(images) == 0 || suits(images[0]) == len(firstImages()) {
		return ""
	}
	return images[0]
}
