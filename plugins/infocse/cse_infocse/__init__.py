"""InfoCSE: sentences that cluster in a document are positives of the encoder that clustered them.

Yang, Liu, Xiao, Lian, Wu, Lian, Sun and Xie: *A Mutually Reinforced Framework for Pretrained
Sentence Embeddings*, arXiv 2202.13802, 2022. Another InfoCSE (Wu et al., Findings of EMNLP 2022,
an auxiliary masked-language network) is a different method.
"""
