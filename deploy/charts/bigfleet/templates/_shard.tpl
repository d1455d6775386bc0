{{- /* Names and addresses within the control plane. All take dicts with root. */ -}}

{{- /* The Service of a shard, as others in the cluster call it: dict of root, shard. */ -}}
{{- define "bigfleet.shardHost" -}}
{{ .root.Release.Name }}-{{ .shard.name }}.{{ .root.Release.Namespace }}.svc
{{- end -}}

{{- define "bigfleet.scheme" -}}
{{ ternary "http" "https" (eq .Values.tls.mode "none") }}
{{- end -}}

{{- define "bigfleet.shardSecret" -}}
{{ .shard.tlsSecret | default (printf "%s-%s-tls" .root.Release.Name .shard.name) }}
{{- end -}}

{{- define "bigfleet.coordinatorSecret" -}}
{{ .Values.coordinator.tlsSecret | default (printf "%s-coordinator-tls" .Release.Name) }}
{{- end -}}

{{- define "bigfleet.webSecret" -}}
{{ .Values.web.tlsSecret | default (printf "%s-web-tls" .Release.Name) }}
{{- end -}}

{{- define "bigfleet.coordinatorUrl" -}}
{{- if .Values.coordinator.enabled -}}
{{ include "bigfleet.scheme" . }}://{{ .Release.Name }}-coordinator.{{ .Release.Namespace }}.svc:{{ .Values.coordinator.service.port }}
{{- else -}}
{{ .Values.shard.coordinatorUrl }}
{{- end -}}
{{- end -}}

{{- define "bigfleet.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (printf "%s-control-plane" .Release.Name) }}
{{- end -}}

{{- /* A Service's names, for certificates: dict of root, name. */ -}}
{{- define "bigfleet.serviceNames" -}}
- {{ .name }}
- {{ .name }}.{{ .root.Release.Namespace }}
- {{ .name }}.{{ .root.Release.Namespace }}.svc
- {{ .name }}.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end -}}

{{- /* TLS as arguments, for a folder. */ -}}
{{- define "bigfleet.tlsArgs" -}}
{{- if eq .Values.tls.mode "none" }}
- --insecure
{{- else }}
- --tls-cert=/etc/bigfleet/tls/tls.crt
- --tls-key=/etc/bigfleet/tls/tls.key
- --tls-ca=/etc/bigfleet/tls/ca.crt
{{- end }}
{{- end -}}

{{- /* What stands before containers in every pod: dict of root, of (the component's settings). */ -}}
{{- define "bigfleet.pod" -}}
serviceAccountName: {{ include "bigfleet.serviceAccount" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .of.terminationGracePeriodSeconds }}
securityContext: {{- include "bigfleet.podSecurity" .root | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- include "bigfleet.placement" .of }}
{{- end -}}
