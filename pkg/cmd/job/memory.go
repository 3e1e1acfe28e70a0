package job

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// megabytes is the value of a flag for memory. As in job files, it is a number of megabytes of 1,048,576 bytes; a number with a unit such as
// 16Gi is also accepted.
type megabytes int

const memoryUsage = "memory of one task: `MB`, or with a unit such as 16Gi"

// String implements pflag.Value.
func (m *megabytes) String() string { return strconv.Itoa(int(*m)) }

// Type implements pflag.Value.
func (m *megabytes) Type() string { return "MB" }

// Set implements pflag.Value.
func (m *megabytes) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		if n, err = withUnit(text); err != nil {
			return err
		}
	}
	if n < 0 {
		return fmt.Errorf("%s is less than nothing: write MB, or a number with a unit such as 16Gi", text)
	}
	*m = megabytes(n)
	return nil
}

// withUnit parses a size with a unit and returns megabytes, rounded up. It accepts the units of Kubernetes, also followed by B for bytes: 16Gi,
// 16GiB, 512M, 1.5G.
func withUnit(text string) (int, error) {
	q, err := resource.ParseQuantity(strings.TrimSuffix(text, "B"))
	// Kubernetes also accepts "Gi" without a number, and 500m, which is half a byte.
	if err != nil || text[0] < '0' && text[0] != '-' || text[0] > '9' || strings.ContainsAny(text, "mun") || q.Cmp(resource.MustParse("1Ei")) > 0 {
		return 0, fmt.Errorf("%s is not a size: write MB, or a number with a unit such as 16Gi", text)
	}
	return int(math.Ceil(q.AsApproximateFloat64() / (1 << 20))), nil
}
