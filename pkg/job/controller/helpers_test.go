package controller_test

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

func contains(s, part string) bool { return strings.Contains(s, part) }
