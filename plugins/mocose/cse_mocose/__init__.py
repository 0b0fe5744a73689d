"""MoCoSE (Cao et al., Findings of ACL 2022): momentum keys, a queue, adversarial views."""
