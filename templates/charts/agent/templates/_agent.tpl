{{/* agent.machines: which machines have which GPUs, or pretend to. */}}
{{- define "agent.machines" -}}
{{- (.Values.global | default dict).gpus | default dict | toJson -}}
{{- end -}}

{{/* agent.real: "true" where any machine has real GPUs. */}}
{{- define "agent.real" -}}
{{- range (.Values.global | default dict).gpus | default dict }}{{ if not .simulated }}true{{ end }}{{ end -}}
{{- end -}}
